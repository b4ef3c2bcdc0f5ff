// Package cli is the frame of a verb: the environment, flags, exit codes,
// problems, text and JSON output, the terminal and the progress line. It knows
// no verb.
package cli
