//go:build windows

package disk

import (
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// hostPath rejects names that Windows reads differently: names that are not
// UTF-8, the other separator, drives and streams, device names, and elements
// whose trailing dots or spaces Windows drops.
func hostPath(name string) bool {
	if !utf8.ValidString(name) || strings.ContainsAny(name, `\:`) || !filepath.IsLocal(name) {
		return false
	}
	for element := range strings.SplitSeq(name, "/") {
		if strings.HasSuffix(element, ".") || strings.HasSuffix(element, " ") {
			return false
		}
	}
	return true
}
