// Package login obtains, stores and renews the gateway's OAuth tokens for
// servers by URL.
//
// A user logs in once by [Store.Login], in a browser that redirects to this
// machine with a code. The protocol's SDK finds and checks the endpoints as the
// revisions 2025-11-25 and 2026-07-28 require: metadata of the resource and of
// the authorization server, PKCE, state, issuer, resource indicators, and the
// client's identification.
//
// A folder that only its owner can read holds one file for each server and URL:
// a token is sent to that URL and to no other. [Store.Handler] is made for
// gateway.Options.Authorize. It has the token, renews it when it has expired,
// and never starts a login. If it has no valid token, the request is not sent,
// and the error says that a login is needed and how to log in.
//
// An authorization server can revoke a refresh token when it issues the next
// one. So only one of the gateways that share a folder renews at a time, by a
// lock that ends with its process, and the others use its result.
package login
