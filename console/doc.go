// Package console serves pages on loopback, on which a person sees what agents
// did, answers the calls that wait, and reverts.
//
// Loopback is no access control: every page in a browser can send requests
// there. So a request needs the exact host name of the console and the cookie
// that a one-time token was exchanged for; a change also needs the origin of
// the console and the token of its form. Every text on a page can come from an
// agent: it is escaped, and no page runs code other than the script of this
// package.
package console
