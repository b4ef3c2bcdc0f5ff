// Package web has the built-in tool http_fetch, and makes tools of the calls of a
// REST service: HTTPCall turns a URL template, with the request that takes it back,
// into a tool that can be verified and undone, without code.
//
// Both act through ctxperm/web alone; the runtime needs its driver:
//
//	client, err := web.New(web.Options{})
//	rt, err := agent.New(agent.Driver(client), agent.Tools(builtin.Tools()...))
package web
