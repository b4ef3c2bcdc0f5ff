// Package canon is the only package through which JSON enters remit: a strict
// decoder, one canonical form, and digests over it.
//
// Decisions, records, approvals and comparisons all use the same bytes. That
// works only if a document has one reading and one spelling. So canon rejects
// everything that two readers could understand differently: a member name that
// occurs twice, half a surrogate pair, bytes that are not UTF-8, text after the
// value. Names are compared exactly: a decoder that also accepts "Allow" for
// "allow" lets a document say two things at once.
//
// # Canonical form
//
// Whitespace is removed. Members are ordered by the UTF-16 code units of their
// names. Strings are escaped as in RFC 8785: the short escapes \b \t \n \f \r
// \" \\, other characters below U+0020 as \u00xx in lower case, all others
// unescaped. Text is not normalised: é as one character and as two are
// different strings.
//
// Numbers are exact decimals, not binary floating point; here this form differs
// from RFC 8785. A number is its value: 1, 1.0, 1e0 and 10e-1 are one number,
// -0 is 0, and nothing is ever rounded. It is written
//
//   - as 0 if it is zero, otherwise with a minus sign if it is negative;
//   - without an exponent if its size is at least 1e-6 and less than 1e40:
//     1200, 0.000001, 1.5; no leading or trailing
//     zeros except those that hold a place;
//   - otherwise as one digit, a point and the other digits if there are any,
//     "e", a sign and the exponent: 1e+40, 1.5e-7.
//
// A number is rejected if it has more than 40 significant digits, or if its
// exponent with one digit before the point lies outside -400 to 400. Both
// bounds apply to the value, not to its spelling, so two spellings of a number
// are accepted or rejected together. Up to 1e21, a number that a double holds
// exactly in its shortest spelling has the same canonical form here as in RFC
// 8785.
//
// testdata/canon/vectors.json at the top of the repository defines all of this
// in cases.
//
// # Digests
//
// [Sum] hashes a domain tag and parts, each after its length, so no two
// different lists have the same hash input. [SumBytes] and [Hash] are the
// SHA-256 of content, which other programs can compute too, except for content
// with whole blocks of zeros: see [Hash].
//
// Everything here is safe for concurrent use except [Hash]. No message of this
// package repeats a value of the document.
package canon
