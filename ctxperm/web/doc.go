// Package web is the handle through which a tool sends HTTP requests, and the Scheme
// that takes their effects back where a service can do that.
//
// # What is reached
//
// A request asks for "connect", with its method, to the resource of its URL, which is
// read once and strictly: every unusual spelling of an address is refused before
// anybody is asked. What a name stands for is decided when it is dialled, on the very
// address of the connection, whoever resolved it: only hosts of the public internet
// are reached, and the networks that Options.Allow names. A redirect of a GET is a
// new access, asked for like the first; redirects of other methods are not followed.
// No proxy is used, whatever the environment says, no connection is used twice, and
// no request is sent again by itself.
//
// Credentials are secrets that the host configured for an origin. They are added to
// requests to that origin, if the call may use the secret, and never once a redirect
// led to another one; neither are the caller's headers then. What a service repeats of
// a secret is taken out before the tool sees it.
//
// Answers are bounded in time, in bytes, in how much they grow when they are unpacked,
// and in redirects.
//
// # What is taken back
//
// A request that can have an effect is on the journal before it is sent, with its way
// back (Undo), which is data: another process can go it. Where the thing has a URL
// that is known before, it is looked at first, and the request is bound to what was
// found by If-Match or If-None-Match; what the answer names is recorded when it is
// known, and until then found again by the idempotency key. An undo looks again, and
// leaves alone what somebody else has changed.
//
// An answer that never came leaves it unknown what happened until the service tells:
// a thing that is not there may still come, for as long as Options.Late says. Where
// nobody can tell, the call is unknown, and stays so; nothing with an effect is sent a
// second time, but with the same key to a service that answers it once (Compensation.Replays).
//
// What a service keeps for itself does not come back: ids, times, numbers of versions,
// messages it sent.
package web
