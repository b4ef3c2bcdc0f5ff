package files

import (
	"bytes"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/revert/effect"
)

// FuzzGlob checks that a glob matches what its regular expression matches. A
// query with an invalid glob is refused.
func FuzzGlob(f *testing.F) {
	for _, s := range [][2]string{
		{"*.go", "a/b.go"},
		{"src/**/*.go", "src/a/b/c.go"},
		{"src/**/*.go", "src/c.go"},
		{"**", "a"},
		{"**/a", "a"},
		{"a/**", "a"},
		{"[a-c]?/x", "b1/x"},
		{`a\*b`, "a*b"},
		{"[", "["},
		{"a/[^b]/c", "a/x/c"},
		{"**/**/a/**", "b/a/c"},
		{"", "x"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, glob, name string) {
		bad := Query{Pattern: "x", Glob: glob}.Check() != nil
		if disk.CheckPath(name) != nil || name == "." || len(glob)+len(name) > 80 || strings.Count(glob, "**") > 4 {
			return // not a name of a file, or too much for the slow matcher
		}
		expr, ok := slowGlob(glob)
		if !ok {
			return // a class; path.Match defines it
		}
		require.False(t, bad, "%q", glob)
		text := name
		if glob != "" && !strings.Contains(glob, "/") {
			text = path.Base(name)
		}
		require.Equal(t, glob == "" || expr.MatchString("/"+text), matches(glob, name), "%q %q %s", glob, name, expr)
	})
}

// slowGlob returns a glob as a regular expression over a path that begins with
// a slash.
func slowGlob(glob string) (*regexp.Regexp, bool) {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for segment := range strings.SplitSeq(glob, "/") {
		if segment == "**" {
			b.WriteString(`(?:/[^/]+)*`)
			continue
		}
		b.WriteString("/")
		for i, r := range segment {
			switch r {
			case '*':
				b.WriteString(`[^/]*`)
			case '?':
				b.WriteString(`[^/]`)
			case '[', ']', '\\', '\uFFFD':
				_ = i
				return nil, false
			default:
				b.WriteString(regexp.QuoteMeta(string(r)))
			}
		}
	}
	expr, err := regexp.Compile(b.String() + `\z`)
	return expr, err == nil
}

// FuzzInverse checks that an inverse round-trips, that its stage name is valid,
// and that its version has one token.
func FuzzInverse(f *testing.F) {
	stage := StagePrefix + strings.Repeat("0a", 16)
	file := &record{Type: "file", Perm: "0644", Mtime: &mtime{Sec: 1, Nsec: 2}, Content: "sha256:00", Kept: &effect.BlobRef{Digest: "sha256:00", Size: 1}}
	for _, i := range []inverse{
		{Stage: stage, Was: file},
		{Stage: stage, Will: &record{Type: "link", Target: []byte("../\xff")}},
		{Stage: stage, Was: &record{Type: "dir", Perm: "4755", Xattrs: [][2]string{{"dXNlci5h", "Yg=="}}}, Will: file},
		{Stage: "../../etc", Was: file},
		{Stage: StagePrefix + strings.Repeat("0A", 16)},
		{Stage: stage, Was: &record{Type: "file", Perm: "+644"}},
		{Stage: stage, Was: &record{Type: "file", Xattrs: [][2]string{{"YQ==", ""}, {"YQ==", "Yg=="}}}},
	} {
		raw, err := canon.Marshal(i)
		require.NoError(f, err)
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		inv, err := readInverse(effect.Change{Scheme: schemeName, Inverse: raw})
		if err != nil {
			return
		}
		require.Regexp(t, "^"+regexp.QuoteMeta(StagePrefix)+"[0-9a-f]{32}$", inv.Stage)
		first, err := inv.encode()
		require.NoError(t, err)
		again, err := readInverse(effect.Change{Scheme: schemeName, Inverse: first})
		require.NoError(t, err)
		second, err := again.encode()
		require.NoError(t, err)
		require.Equal(t, string(first), string(second))
		for _, r := range []*record{inv.Was, inv.Will} {
			v, err := r.version()
			if err != nil || r == nil || r.Type == typeLink && r.Perm != "" {
				continue
			}
			back := v.record()
			if back == nil {
				continue
			}
			same, err := back.version()
			require.NoError(t, err)
			require.Equal(t, v.Token(), same.Token())
			require.Equal(t, pairs(v.Xattrs), pairs(same.Xattrs))
			require.Len(t, v.Xattrs, len(r.Xattrs), "no attribute is there twice")
		}
	})
}

// FuzzPermissionBits checks that twelve bits have one spelling of four digits.
func FuzzPermissionBits(f *testing.F) {
	for _, seed := range []string{"0644", "4755", "7777", "0o44", "+644", "644", "0_44", "8000", " 644", "٠644"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		mode, err := parseOctal(text)
		if err != nil {
			require.Zero(t, mode)
			n, bad := strconv.ParseUint(text, 8, 12)
			require.True(t, bad != nil || len(text) != 4, "%d is a good mode", n)
			return
		}
		require.Equal(t, text, octal(mode))
		require.Zero(t, mode&^(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky))
	})
}

// FuzzToken checks that two versions have the same token only if they are the
// same.
func FuzzToken(f *testing.F) {
	f.Add("file", uint16(0o644), []byte("a"), []byte("t"), "user.a", []byte("b"), uint8(0))
	f.Add("link", uint16(0o777), []byte("a"), []byte("t"), "user.\xff", []byte{}, uint8(1))
	f.Add("dir", uint16(0o7777), []byte(nil), []byte(nil), "", []byte(nil), uint8(3))
	f.Fuzz(func(t *testing.T, kind string, bits uint16, content, target []byte, name string, value []byte, part uint8) {
		mode, err := parseOctal("0000"[min(4, len(strconv.FormatUint(uint64(bits&0o7777), 8))):] + strconv.FormatUint(uint64(bits&0o7777), 8))
		require.NoError(t, err)
		v := Version{Type: typeFile, Perm: mode, Content: string(canon.SumBytes(content)), Xattrs: map[string][]byte{name: value}}
		switch kind {
		case typeLink:
			v = Version{Type: typeLink, Target: string(target)}
		case typeDir:
			v = Version{Type: typeDir, Perm: mode, Xattrs: map[string][]byte{name: value}}
		}
		other := v
		other.Xattrs = map[string][]byte{name: bytes.Clone(value)}
		require.Equal(t, v.Token(), other.Token())
		switch part % 4 {
		case 0:
			other.Perm ^= 1
		case 1:
			other.Content, other.Target = string(canon.SumBytes(append(bytes.Clone(content), 'x'))), v.Target+"x"
		case 2:
			other.Xattrs[name] = append(bytes.Clone(value), 'x')
		case 3:
			other.Xattrs[name+"x"] = nil
		}
		said := v.Type == typeFile || v.Type == typeLink && part%4 == 1 || v.Type == typeDir && part%4 != 1
		require.Equal(t, said, v.Token() != other.Token(), "what is no part of the version does not count, and all else does")
	})
}
