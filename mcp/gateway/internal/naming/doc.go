// Package naming makes the names of upstream tools, prompts and servers: those
// that clients know, and those of the runtime. It also compares names that a
// reader could confuse.
package naming
