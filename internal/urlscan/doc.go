// Package urlscan finds URLs in texts as browsers and programs do, and decides
// when two of them are equal.
package urlscan
