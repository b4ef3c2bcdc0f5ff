//go:build !portable

package hooks_test

// portable states that files are changed with what every system supports.
const portable = false
