// Package execute holds remit exec, which runs one command for a person or a
// coding agent, with its standard files connected.
package execute
