package statcheck

import (
	"flag"
	"strconv"
	"testing"
)

// Checks sets the number of draws for the properties of a test: usually, or
// whole. A number on the command line takes precedence.
func Checks(t testing.TB, usually, whole int) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	if f == nil || f.Value.String() != f.DefValue {
		return
	}
	if err := f.Value.Set(strconv.Itoa(Size(usually, whole))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(f.DefValue) }) // the previous value
}
