// Package secrets is the handle through which a tool uses a secret that it
// never sees.
//
// The host program passes its runtime a Store with the source of each secret
// (agent.Driver). A tool opens a secret by name, which authorizes "use
// secret://name". It gets a Secret: a handle that prints as its name in every
// format. Only packages of this module can read its value, such as ctxperm/web
// for a header.
//
// A handle can still reveal a value, for example if a service repeats the
// header that it received. So the runtime removes values from outputs, errors,
// notes and messages of every call before it records or shows them. It finds a
// value as it is, in base64 (also as a part of a longer text), in hexadecimal,
// and escaped for URLs, JSON, Go and HTML. It does not find compressed,
// encrypted, reversed or split values. It knows the values that were opened
// since the store was created.
//
// Sources are the operating system's keyring (ctxperm/secrets/keyring), a file
// encrypted with age for machines without one (ctxperm/secrets/vault), and
// environment variables. The host program names each variable: the store reads
// no other.
package secrets
