// Package browsertest drives the pages of remit console in Chromium, with the
// real command and real journals. It is a module of its own, so that the client
// of the browser is no dependency of remit.
package browsertest
