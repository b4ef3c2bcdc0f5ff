// Package startup opens a runtime and a session from the flags that say which
// policy, roots, tools and limits hold.
package startup
