// Package urlscan finds URLs in texts as browsers and programs would, and says when two of
// them are one.
package urlscan
