package main

import (
	"go/constant"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool"
)

// limitRows are the rows of the tables of docs/reference/limits.md.
func limitRows(t *testing.T) (rows [][]string, text string) {
	t.Helper()
	data, err := os.ReadFile("../../docs/reference/limits.md")
	require.NoError(t, err)
	for l := range strings.SplitSeq(string(data), "\n") {
		cells := strings.Split(strings.Trim(l, "| "), " | ")
		if strings.HasPrefix(l, "| ") && len(cells) == 4 && cells[0] != "limit" && cells[0] != "---" {
			rows = append(rows, cells)
		}
	}
	return rows, string(data)
}

// TestLimitsAreAsWritten: each default stands in the code as it stands in the
// docs, and the words of each error too.
func TestLimitsAreAsWritten(t *testing.T) {
	rows, text := limitRows(t)
	require.Greater(t, len(rows), 20)
	code := goCode(t)
	quoted := regexp.MustCompile("`([^`]+)`")
	for _, row := range rows {
		where := quoted.FindAllStringSubmatch(row[3], 2)
		require.Len(t, where, 2, "%q", row)
		source, err := os.ReadFile(filepath.Join("..", "..", where[0][1]))
		require.NoError(t, err)
		require.True(t, strings.Contains(string(source), where[1][1]), "%s: %s does not say %q", row[0], where[0][1], where[1][1])
		if !strings.HasPrefix(row[1], "none") {
			require.Equal(t, documented(t, row[1]), coded(t, where[1][1]), "%s", row[0])
		}
		for _, words := range quoted.FindAllStringSubmatch(row[2], -1) {
			require.True(t, strings.Contains(code, words[1]), "%s: no code says %q", row[0], words[1])
		}
	}
	for i := range reflect.TypeFor[tool.Limits]().NumField() {
		require.Contains(t, text, "`Limits."+reflect.TypeFor[tool.Limits]().Field(i).Name+"`")
	}
}

// goCode is all code that is no test.
func goCode(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	root := filepath.Join("..", "..")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		_, _ = b.Write(data)
		return err
	}))
	return b.String()
}

// documented reads "16 MiB", "2 min" or "10,000": bytes, nanoseconds, a number.
func documented(t *testing.T, text string) int64 {
	t.Helper()
	number, unit, _ := strings.Cut(text, " ")
	n, err := strconv.ParseInt(strings.ReplaceAll(number, ",", ""), 10, 64)
	require.NoError(t, err, text)
	units := map[string]int64{
		"": 1, "bytes": 1, "characters": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9,
	}
	require.Contains(t, units, unit, text)
	return n * units[unit]
}

// coded is the value of the expression at the end of a piece of code, or its
// last number where it is a text.
func coded(t *testing.T, code string) int64 {
	t.Helper()
	at := strings.LastIndexAny(code, "=,:")
	if at < 0 || strings.Contains(code, " > ") {
		found := regexp.MustCompile(`\d+`).FindAllString(code, -1)
		require.NotEmpty(t, found, code)
		n, err := strconv.ParseInt(found[len(found)-1], 10, 64)
		require.NoError(t, err)
		return n
	}
	expr := strings.Trim(code[at+1:], " )}")
	for unit, n := range map[string]string{"time.Millisecond": "1000000", "time.Second": "1000000000", "time.Minute": "60000000000", "time.Hour": "3600000000000"} {
		expr = strings.ReplaceAll(expr, unit, n)
	}
	value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, expr)
	require.NoError(t, err, code)
	n, exact := constant.Int64Val(value.Value)
	require.True(t, exact, code)
	return n
}

func TestReadingOfLimits(t *testing.T) {
	for text, want := range map[string]int64{"16 MiB": 16 << 20, "2 min": 120e9, "10,000": 10_000, "64 characters": 64, "24 h": 86400e9} {
		require.Equal(t, want, documented(t, text), text)
	}
	for code, want := range map[string]int64{
		"l.Input = 16 << 20": 16 << 20, "set(&l.Asked, 24*time.Hour)": 86400e9, "limit: time.Minute": 60e9,
		"at most 64 characters": 64, "len(name) > 64": 64, "maxParts = 10_000": 10_000, "Depth: 128": 128,
	} {
		require.Equal(t, want, coded(t, code), code)
	}
}
