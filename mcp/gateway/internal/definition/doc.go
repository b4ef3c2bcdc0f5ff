// Package definition holds what an upstream declares: its tools, prompts,
// resource templates and resources, each with the digest that a pin compares.
package definition
