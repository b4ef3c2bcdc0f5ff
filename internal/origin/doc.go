// Package origin finds out where the values of arguments were seen before: in
// what a person said, in the configuration, in trusted or in untrusted content.
// It compares exact values, and knows nothing of tools, sessions and journals.
package origin
