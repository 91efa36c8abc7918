"use strict";

const place = document.getElementById("swagger-ui");
const cookie = document.cookie.match(/(?:^|; )csrftoken=([^;]+)/);

SwaggerUIBundle({
  url: place.dataset.document,
  domNode: place,
  deepLinking: true,
  // A user who is signed in to the operators' pages sends that session, and with it the token against cross-site forms.
  requestInterceptor(request) {
    if (cookie) request.headers["X-CSRFToken"] = decodeURIComponent(cookie[1]);
    return request;
  },
});
