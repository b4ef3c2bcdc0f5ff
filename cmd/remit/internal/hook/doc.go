// Package hook has the verbs of coding agents: hook answers one event, daemon
// is the resident process that decides.
package hook
