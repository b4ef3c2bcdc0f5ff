package origin_test

import (
	"strings"
	"testing"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/origin"
)

// FuzzSeen: what untrusted content has between spaces is found again, in plain text and in JSON, and so is what it
// has in another case or in quotes. What a person said word for word is found, unless it ends a sentence inside.
func FuzzSeen(f *testing.F) {
	for _, v := range []string{"eve@evil.example", "DE89 3704 0044 0532 0130 00", "1,234.50 €", `C:\x\"y"`, "Łukasz", "\u200beve", "рома@почта.рф", "+49 170 1234567", "x\x00y", "\xff\xfe", "EUR12", "\u0130x", "a\u0300b", "ﬁx", "\U0001f600 ok", "₹500"} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if len(value) > 200 {
			return
		}
		plain, encoded, said := newIndex(), newIndex(), newIndex()
		plain.Seen([]byte("use "+value+" now"), false)
		document, err := canon.Marshal(map[string]string{"text": "use " + value + " now"})
		if err != nil { // not UTF-8
			return
		}
		encoded.Seen(document, true)
		say(said, "use "+value+" now")
		_ = said.Look(value, false)
		_ = origin.Identifiers(value)
		letters := strings.ContainsFunc(value, func(r rune) bool { return r < 0x80 && (r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z') })
		if !letters { // signs alone are in no filter
			return
		}
		for name, x := range map[string]*origin.Index{"plain": plain, "JSON": encoded} {
			for _, spelled := range []string{value, strings.ToLower(value), strings.ToUpper(value), " " + value + "\n"} {
				if strings.ToLower(strings.ToUpper(spelled)) != strings.ToLower(spelled) { //nolint:staticcheck // EqualFold folds more
					continue // letters whose case is not one to one
				}
				if x.Look(spelled, false)&origin.Untrusted == 0 {
					t.Errorf("%s: %q is not found in %q", name, spelled, value)
				}
			}
			x.Begun("c", false, nil, true)
			x.Returned("c", []string{value})
			if x.Look(value, false).Known() && !origin.Short(value) {
				t.Errorf("%s: %q is trusted", name, value)
			}
		}
	})
}
