//go:build !race

package crash_test

const racing = false
