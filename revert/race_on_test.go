//go:build race

package revert_test

const racing = true
