// Package secrets is the handle through which a tool uses a secret that it never
// sees.
//
// The host gives its runtime a Store that says where each secret is kept
// (agent.Driver). A tool opens one by name, which asks for "use secret://name", and
// gets a Secret: a handle that prints as its name in every format, and that only
// packages of this module can turn into the value, such as ctxperm/web for a header.
//
// What a handle gives away all the same, such as a service that repeats the header
// it was sent, the runtime takes out of outputs, errors, notes and messages of
// every call before they are written down or shown: the value as it is, in base64
// (also as a part of a longer text), in hexadecimal, and escaped for URLs, JSON, Go
// and HTML. What is compressed, encrypted, reversed or cut into pieces is not
// found. Known are the values that were opened since the store was made.
//
// Sources are the operating system's keyring (ctxperm/secrets/keyring), a file
// encrypted with age for machines without one (ctxperm/secrets/vault), and
// variables of the environment, each of which the host names: nothing is read from
// the environment by itself.
package secrets
