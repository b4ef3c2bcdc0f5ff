// Package files is the built-in tools for the files below the root "workspace":
// file_read, file_list, file_write, file_edit and file_delete. They act only
// through ctxperm/files, so that every change is asked for, recorded before it
// happens and undone exactly; those that change something look at the file
// afterwards, not at their own words.
package files
