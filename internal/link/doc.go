// Package link finds URLs in texts, and says when two of them are one: net/url reads a URL,
// and neither finds one nor compares two.
package link
