package statcheck

import (
	"flag"
	"strconv"
	"testing"
)

// Checks lets the properties of a test try as many draws as are usual, or whole. Who says
// on the command line how many has them.
func Checks(t testing.TB, usually, whole int) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	if f == nil || f.Value.String() != f.DefValue {
		return
	}
	if err := f.Value.Set(strconv.Itoa(Size(usually, whole))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(f.DefValue) }) // which it had
}
