// Package web is the handle through which a tool sends HTTP requests. It also
// contains the Scheme that reverts their effects if the service supports that.
//
// # Which addresses a request reaches
//
// A request authorizes "connect", with its method, on the resource of its URL.
// The URL is parsed once and strictly: an unusual spelling of an address is
// refused before any decision. The client checks the address of a name when it
// dials, on the address of the connection, for any resolver. It reaches only
// hosts of the public internet, and the networks in Options.Allow. A redirect
// of a GET is a new access, authorized like the first. Other methods do not
// follow redirects. The client ignores proxies of the environment, uses no
// connection twice, and never repeats a request itself.
//
// Credentials are secrets that the host program configured for an origin. The
// client adds them to requests to that origin, if the call may use the secret.
// After a redirect to another origin it adds neither credentials nor the
// caller's headers. It removes secrets that a service repeats before the tool
// sees the response.
//
// Responses are bounded in time, bytes, decompression ratio and redirects.
//
// # How effects are reverted
//
// A request that can have an effect is on the journal before it is sent, with
// its Compensation. This is data, so another process can revert the effect. If
// the URL of the item is known in advance, the client reads the item first. It
// binds the request to that version by If-Match or If-None-Match. If the
// response names the item, the client records it then. Until then the
// idempotency key finds it. A revert reads the item again, and does not change
// one that another client has changed.
//
// If the response is lost, the effect is unknown until the service reports it.
// A missing item can still appear, for as long as Options.Late. If the service
// cannot report the effect, the outcome of the call is unknown and stays so.
// The client never sends an effect a second time. The exception is the same key
// to a service that applies it once (Compensation.Replays).
//
// A revert does not restore what only the service controls: IDs, times, version
// numbers, and messages that it sent.
package web
