// Package tools has the verbs about tool declarations: tools, its checks
// and statistics, and definition files.
package tools
