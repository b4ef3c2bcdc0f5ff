// Package files is the built-in tools for files: file_read, file_list,
// file_search, file_write, file_edit, file_delete, file_move, file_copy and
// dir_create. They act only through ctxperm/files, so that every change is asked
// for, recorded before it happens and undone exactly; those that change something
// look at the files afterwards, not at their own words.
//
// A call may name a root; without one it means "workspace". Which roots there are is up to the runtime, and what may be
// done below each to the session's grant and the policy: the bounds of these
// tools name no root.
package files
