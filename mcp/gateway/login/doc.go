// Package login gets the gateway tokens of OAuth at servers by URL that want them, and keeps them.
//
// A person logs in by [Store.Login], once: in a browser, which comes back to this machine with a code. Who asks, where, and for what is
// found and checked by the protocol's own SDK, as the revisions 2025-11-25 and 2026-07-28 of the protocol say: metadata of the resource and of
// the authorization server, PKCE, state, issuer, resource indicators, and how the client says who it is.
//
// What comes of that is kept in a folder, for its owner alone, in one file for each server and URL: a token is sent to that URL and to
// nothing else. [Store.Handler] is what gateway.Options.Authorize wants: it has the token, renews it when it has ended, and never asks
// anybody. Where it has none that counts, what was to be sent is not sent, and the error says that a login is wanted and how to do that.
//
// An authorization server may take a refresh token back in the moment in which it gives the next one. So of many gateways that share a
// folder one renews at a time, by a lock that ends with its process, and the others take what it got.
package login
