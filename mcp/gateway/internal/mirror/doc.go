// Package mirror makes tools, resources and prompts of the runtime from what
// the upstreams declare and the configuration says of them.
package mirror
