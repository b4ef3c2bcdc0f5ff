// Package files implements the tools for files: file_read, file_list,
// file_search, file_write, file_edit, file_delete, file_move, file_copy and
// dir_create. They act through ctxperm/files alone. So the policy decides
// every change, the journal has it before it happens, and a revert restores
// it. The tools that change files verify the files, not their own output.
//
// A call without a root means "workspace". The bounds of these tools name no
// root: the runtime names the roots, and the grant of the session and the
// policy decide the accesses below each.
package files
