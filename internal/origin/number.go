package origin

import "strings"

// currencies can stand before or after an amount.
const currencies = "$€£¥₹"

// number returns a number by its value: without signs of a currency, grouping,
// and zeros that do not count. One comma before exactly three digits groups,
// unless it follows a zero. Any other one, and one point, are decimal points.
func number(word string) (canonical string, ok bool) {
	word = strings.TrimRight(strings.Trim(word, currencies), "%")
	sign := ""
	if rest, is := strings.CutPrefix(word, "-"); is {
		sign, word = "-", strings.TrimLeft(rest, currencies)
	}
	if word == "" || len(word) > 40 || word[0] < '0' || word[0] > '9' || len(word) > 1 && word[0] == '0' && isAlnum(word[1]) {
		return "", false // with a zero in front it is the name of something
	}
	whole, fraction, ok := split(word)
	if !ok {
		return "", false
	}
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		whole += "." + fraction
	}
	if whole == "0" {
		sign = ""
	}
	return sign + whole, true
}

// split returns the digits before and after the decimal point.
func split(word string) (whole, fraction string, ok bool) {
	if strings.ContainsAny(word, "'’") {
		word = strings.ReplaceAll(strings.ReplaceAll(word, "'", ""), "’", "")
	}
	for i := range len(word) {
		if c := word[i]; (c < '0' || c > '9') && c != '.' && c != ',' {
			return "", "", false
		}
	}
	commas, points := strings.Count(word, ","), strings.Count(word, ".")
	switch {
	case commas == 0 && points <= 1:
		whole, fraction, _ = strings.Cut(word, ".")
		return whole, fraction, true
	case points == 0 && commas == 1 && (len(word)-strings.IndexByte(word, ',')-1 != 3 || word[0] == '0'):
		whole, fraction, _ = strings.Cut(word, ",")
		return whole, fraction, true
	}
	group, decimal := ",", "."
	if strings.LastIndexByte(word, ',') > strings.LastIndexByte(word, '.') && points > 0 {
		group, decimal = ".", ","
	}
	if commas > 0 && points == 0 {
		decimal = "" // every comma groups
	} else if points > 1 && commas == 0 {
		group, decimal = ".", ""
	}
	if decimal != "" {
		if strings.Count(word, decimal) > 1 {
			return "", "", false
		}
		word, fraction, _ = strings.Cut(word, decimal)
	}
	parts := strings.Split(word, group)
	for _, p := range parts[1:] {
		if len(p) != 3 {
			return "", "", false
		}
	}
	return strings.Join(parts, ""), fraction, len(parts[0]) > 0
}
