package web

// Roles has the role that each route of the API needs.
var Roles = roles
