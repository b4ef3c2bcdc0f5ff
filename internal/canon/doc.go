// Package canon is the one place where JSON enters remit: a strict decoder, one canonical form, and digests over it.
//
// Whatever is decided, journaled, approved or compared is decided on the same bytes. That only holds when a document has one
// reading and one spelling, so everything two readers could understand differently is refused: a member name that occurs
// twice, half a surrogate pair, bytes that are not UTF-8, text after the value. Names are compared exactly; a decoder that
// also takes "Allow" for "allow" lets a document say two things at once.
//
// # Canonical form
//
// White space goes. Members are ordered by the UTF-16 code units of their names and strings are escaped as RFC 8785 says: the
// short escapes \b \t \n \f \r \" \\, other characters below U+0020 as \u00xx in lower case, all else as itself. Text is not
// normalised: é as one character and as two are different strings.
//
// Numbers are exact decimals, not binary floating point, which is where this form leaves RFC 8785. A number is its value:
// 1, 1.0, 1e0 and 10e-1 are one number, -0 is 0, and nothing is ever rounded. It is written
//
//   - as 0 when it is zero, else with a minus sign when it is negative;
//   - without an exponent when it is at least 1e-6 and less than 1e40 in size: 1200, 0.000001, 1.5; no leading or trailing
//     zeros except those that hold a place;
//   - else as one digit, a point and the other digits if there are any, "e", a sign and the exponent: 1e+40, 1.5e-7.
//
// A number of more than 40 significant digits, or whose exponent when written with one digit before the point lies outside
// -400 to 400, is refused. Both bounds are on the value, not on its spelling, so two spellings of a number are accepted or
// refused together. Up to 1e21 a number that a double holds exactly in its shortest spelling has the same canonical form here
// as in RFC 8785.
//
// testdata/canon/vectors.json at the top of the repository fixes all of this in cases.
//
// # Digests
//
// [Sum] hashes a domain tag and parts, each behind its length, so that no two different lists give the same input to the
// hash; [SumBytes] and [Hash] are the SHA-256 of content, which other programs can compute too, but for content that holds
// whole blocks of zeros: see [Hash].
//
// Everything here is safe for concurrent use except [Hash]. No message of this package repeats a value of the document.
package canon
