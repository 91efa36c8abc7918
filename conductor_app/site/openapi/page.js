"use strict";

const place = document.getElementById("swagger-ui");
const name = `${place.dataset.cookie}=`;
const cookie = document.cookie.split("; ").find((each) => each.startsWith(name));

SwaggerUIBundle({
  url: place.dataset.document,
  domNode: place,
  deepLinking: true,
  // A user who is signed in to the operators' pages sends that session, and with it the token against cross-site forms.
  requestInterceptor(request) {
    if (cookie) request.headers["X-CSRFToken"] = decodeURIComponent(cookie.slice(name.length));
    return request;
  },
});
