package connect_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSharedJournal: the journal that is named stays in each entry until another one is.
func TestSharedJournal(t *testing.T) {
	w := newTestHome(t)
	w.write(cursorFile, one)
	w.Journal = "postgres://remit@db/remit"
	w.connect("cursor")
	require.Regexp(t, `"--journal",\s+"postgres://remit@db/remit"\s`, w.read(cursorFile))
	w.Journal = ""
	require.False(t, w.connect("cursor").Changed())
	w.Journal = "postgres://other@db/remit"
	w.connect("cursor")
	require.Regexp(t, `"--journal",\s+"postgres://other@db/remit"\s`, w.read(cursorFile))
	w.disconnect("cursor")
	require.Equal(t, one, w.read(cursorFile))
}

// TestRetention: the retention that is named stays in each entry until another one is.
func TestRetention(t *testing.T) {
	w := newTestHome(t)
	w.write(cursorFile, one)
	w.write("project/.cursor/mcp.json", one)
	w.Keep, w.KeepLast = "12h", "5"
	w.connect("cursor")
	for _, file := range []string{cursorFile, "project/.cursor/mcp.json"} {
		require.Regexp(t, `"--keep",\s+"12h",\s+"--keep-last",\s+"5"\s`, w.read(file))
	}
	w.Keep, w.KeepLast = "", ""
	require.False(t, w.connect("cursor").Changed())
	w.Keep = "1h"
	w.connect("cursor")
	require.Regexp(t, `"--keep",\s+"1h",\s+"--keep-last",\s+"5"\s`, w.read(cursorFile))
	w.disconnect("cursor")
	require.Equal(t, one, w.read(cursorFile))
}
