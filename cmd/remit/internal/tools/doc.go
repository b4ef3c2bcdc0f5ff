// Package tools has the verbs about tool declarations: tools, its checks,
// adjustments and statistics.
package tools
