package record_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// This file is the other program that computes the vectors of
// testdata/journal/records.json. It has the formulas of
// docs/reference/commitments.md, and uses nothing of package record or of
// internal/canon: both sides of a comparison must not have the same defect.

var update = flag.Bool("update", false, "write the digests of testdata/journal/records.json anew, from the formulas alone")

const vectorFile = "../../testdata/journal/records.json"

type formulaFile struct {
	About       string              `json:"about"`
	Records     []formulaRecord     `json:"records"`
	Disclosures []formulaDisclosure `json:"disclosures"`
	Erased      []formulaErased     `json:"erased_fields"`
}

type formulaRecord struct {
	Kind            string          `json:"kind"`
	Header          json.RawMessage `json:"header"`
	Salt            string          `json:"salt"`
	Body            json.RawMessage `json:"body"`
	CanonicalHeader string          `json:"canonical_header"`
	CanonicalBody   string          `json:"canonical_body"`
	BodyDigest      string          `json:"body_digest"`
	Leaf            string          `json:"leaf"`
}

// formulaDisclosure is what a disclosure of a record's fields has.
type formulaDisclosure struct {
	Leaf       string   `json:"leaf"`
	Shown      []string `json:"shown"`
	Disclosure struct {
		Header string         `json:"header"`
		Fields []formulaField `json:"fields"`
	} `json:"disclosure"`
}

type formulaField struct {
	Name   string `json:"name"`
	Value  string `json:"value,omitempty"`
	Salt   string `json:"salt,omitempty"`
	Digest string `json:"digest,omitempty"`
}

// formulaErased is what a record without some fields has as salt and body.
type formulaErased struct {
	Leaf  string   `json:"leaf"`
	Names []string `json:"names"`
	Salt  string   `json:"salt"`
	Body  string   `json:"body"`
}

func TestFormulas(t *testing.T) {
	data, err := os.ReadFile(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	var file formulaFile
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if *update {
		file.compute(t)
		var out bytes.Buffer
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", " ")
		if err := enc.Encode(file); err != nil {
			t.Fatal(err)
		}
		// encoding/json always escapes this character, as canonical JSON does not.
		if err := os.WriteFile(vectorFile, bytes.ReplaceAll(out.Bytes(), []byte(`\u2028`), []byte("\u2028")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	leaves := map[string]formulaRecord{}
	for i, r := range file.Records {
		fields := saltedFields(t, r.Salt, r.CanonicalBody)
		if len(fields) == 0 && strings.Trim(r.Salt, "0") != "" {
			t.Errorf("record %d, %s: a salt of no field", i, r.Kind)
		}
		if body := bodyOf(t, fields); r.BodyDigest != body || r.Leaf != leafOfText(t, body, r.CanonicalHeader) {
			t.Errorf("record %d, %s: digest or leaf", i, r.Kind)
		}
		leaves[r.Leaf] = r
	}
	for i, d := range file.Disclosures {
		if leafOfText(t, bodyOf(t, d.Disclosure.Fields), d.Disclosure.Header) != d.Leaf {
			t.Errorf("disclosure %d does not prove its leaf", i)
		}
		all := values(t, leaves[d.Leaf].CanonicalBody)
		for _, f := range d.Disclosure.Fields {
			if slices.Contains(d.Shown, f.Name) != (f.Value != "" && f.Value == string(all[f.Name])) {
				t.Errorf("disclosure %d: field %s", i, f.Name)
			}
		}
	}
	for i, e := range file.Erased {
		fields := readErased(t, e.Salt, e.Body)
		if leafOfText(t, bodyOf(t, fields), leaves[e.Leaf].CanonicalHeader) != e.Leaf {
			t.Errorf("record %d with erased fields does not fit its leaf", i)
		}
		for _, f := range fields {
			if slices.Contains(e.Names, f.Name) != (f.Value == "") {
				t.Errorf("record %d with erased fields: field %s", i, f.Name)
			}
		}
	}
	if len(file.Disclosures) < 4 || len(file.Erased) < 3 {
		t.Error("vectors are missing")
	}
}

// compute writes the digests of all records, and the other vectors from some of
// them.
func (file *formulaFile) compute(t *testing.T) {
	file.Disclosures, file.Erased = nil, nil
	some := map[string][]string{"started": {"class", "tool"}, "done": {"output"}, "session": {"policy", "principal", "roots"}, "denied": {"why"}}
	for i := range file.Records {
		r := &file.Records[i]
		fields := saltedFields(t, r.Salt, r.CanonicalBody)
		if len(fields) == 0 {
			r.Salt = strings.Repeat("0", 32)
		}
		r.BodyDigest = bodyOf(t, fields)
		r.Leaf = leafOfText(t, r.BodyDigest, r.CanonicalHeader)
		names := some[r.Kind]
		if len(names) == 0 {
			continue
		}
		file.disclose(t, *r, fields, nil)
		file.disclose(t, *r, fields, names)
		file.erase(t, *r, fields, names)
		delete(some, r.Kind) // one record of each kind is enough
	}
}

func (file *formulaFile) disclose(t *testing.T, r formulaRecord, fields []formulaField, shown []string) {
	d := formulaDisclosure{Leaf: r.Leaf, Shown: shown}
	d.Disclosure.Header = r.CanonicalHeader
	for _, f := range fields {
		if !slices.Contains(shown, f.Name) {
			f = formulaField{Name: f.Name, Digest: "sha256:" + hex.EncodeToString(digestOf(t, f))}
		}
		d.Disclosure.Fields = append(d.Disclosure.Fields, f)
	}
	file.Disclosures = append(file.Disclosures, d)
}

func (file *formulaFile) erase(t *testing.T, r formulaRecord, fields []formulaField, names []string) {
	e := formulaErased{Leaf: r.Leaf, Names: names}
	rest, gone := "", ""
	for _, f := range fields {
		if slices.Contains(names, f.Name) {
			gone += fmt.Sprintf("%02x%x%x", len(f.Name), f.Name, digestOf(t, f))
			continue
		}
		e.Salt += f.Salt
		rest += "," + `"` + f.Name + `":` + f.Value
	}
	e.Salt += gone
	e.Body = "{" + rest[min(1, len(rest)):] + "}"
	file.Erased = append(file.Erased, e)
}

// values returns the members of a body, with their texts.
func values(t *testing.T, body string) map[string]json.RawMessage {
	t.Helper()
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(body), &members); err != nil {
		t.Fatal(err)
	}
	return members
}

// saltedFields returns the fields of a body in order, with their salts.
func saltedFields(t *testing.T, salt, body string) (fields []formulaField) {
	t.Helper()
	members := values(t, body)
	for i, name := range slices.Sorted(maps.Keys(members)) {
		two := sha256.Sum256(slices.Concat([]byte("remit/salts/v1"), unhex(t, salt), binary.BigEndian.AppendUint32(nil, uint32(i/2))))
		half := two[:16]
		if i%2 == 1 {
			half = two[16:]
		}
		fields = append(fields, formulaField{Name: name, Value: string(members[name]), Salt: hex.EncodeToString(half)})
	}
	return fields
}

// readErased returns the fields of a record with erased fields, in order.
func readErased(t *testing.T, salt, body string) (fields []formulaField) {
	t.Helper()
	left, members := unhex(t, salt), values(t, body)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		fields = append(fields, formulaField{Name: name, Value: string(members[name]), Salt: hex.EncodeToString(left[:16])})
		left = left[16:]
	}
	for len(left) > 0 {
		n := 1 + int(left[0])
		fields = append(fields, formulaField{Name: string(left[1:n]), Digest: "sha256:" + hex.EncodeToString(left[n:n+32])})
		left = left[n+32:]
	}
	slices.SortFunc(fields, func(a, b formulaField) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return fields
}

func digestOf(t *testing.T, f formulaField) []byte {
	t.Helper()
	if f.Digest != "" {
		return unhex(t, f.Digest[len("sha256:"):])
	}
	sum := sha256.Sum256(slices.Concat([]byte("remit/field/v1"), unhex(t, f.Salt), []byte(f.Value)))
	return sum[:]
}

func bodyOf(t *testing.T, fields []formulaField) string {
	t.Helper()
	in := []byte("remit/body/v1")
	for _, f := range fields {
		in = slices.Concat(in, []byte{byte(len(f.Name))}, []byte(f.Name), digestOf(t, f))
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(in))
}

func leafOfText(t *testing.T, body, header string) string {
	t.Helper()
	return fmt.Sprintf("sha256:%x", sha256.Sum256(slices.Concat([]byte("remit/leaf/v1"), unhex(t, body[len("sha256:"):]), []byte(header))))
}

func unhex(t *testing.T, digits string) []byte {
	t.Helper()
	b, err := hex.DecodeString(digits)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
