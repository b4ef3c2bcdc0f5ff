//go:build portable

package hooks_test

// portable states that files are changed with what every system supports. Then
// a file that is restored is not linked to its other names again.
const portable = true
