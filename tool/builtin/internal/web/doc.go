// Package web implements the built-in tool http_fetch, and the tools of the
// calls of a REST service: HTTPCall makes a tool of a URL template and the
// request that reverts it.
//
// Both act through ctxperm/web alone. The runtime needs its driver.
package web
