"use strict";

const place = document.getElementById("swagger-ui");
const cookie = document.cookie.match(/(?:^|; )csrftoken=([^;]+)/);

SwaggerUIBundle({
  url: place.dataset.document,
  domNode: place,
  deepLinking: true,
  // Whoever is logged in to the operators' pages sends that login, and with it the guard against other sites' forms.
  requestInterceptor(request) {
    if (cookie) request.headers["X-CSRFToken"] = decodeURIComponent(cookie[1]);
    return request;
  },
});
