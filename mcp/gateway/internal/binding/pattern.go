package binding

import "strings"

// FolderOf returns the folder of a pattern that names a whole folder.
func FolderOf(pattern string) (folder string, ok bool) { return strings.CutSuffix(pattern, "/**") }

// RootOf returns the root of a file pattern.
func RootOf(pattern string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(pattern, "file://"), "/")
	return name
}
