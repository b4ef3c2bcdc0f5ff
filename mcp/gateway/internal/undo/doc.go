// Package undo reverts calls of upstream tools: by a compensation, which is
// another call, or from a snapshot of files or folders.
package undo
