// Package completion completes command lines in a shell.
package completion
