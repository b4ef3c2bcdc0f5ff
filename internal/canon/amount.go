package canon

import (
	"errors"
	"math/big"
	"slices"
	"strings"
)

// Amount is an exact decimal number, for sums without rounding. It is a value;
// the zero Amount is 0.
type Amount struct {
	digits   *big.Int // times ten to the exponent; nil: 0
	exponent int
}

// ParseAmount reads a JSON number within the bounds of the canonical form.
func ParseAmount(number string) (Amount, error) {
	v, err := Parse([]byte(number), DefaultLimits())
	if err != nil {
		return Amount{}, err
	}
	if v.Kind() != Number {
		return Amount{}, errors.New("not a number")
	}
	mantissa, exponent, _ := strings.Cut(v.Text(), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	a := Amount{digits: new(big.Int), exponent: -len(fraction)}
	if _, ok := a.digits.SetString(whole+fraction, 10); !ok {
		return Amount{}, errors.New("not a number")
	}
	if exponent != "" {
		shift, ok := new(big.Int).SetString(exponent, 10)
		if !ok {
			return Amount{}, errors.New("not a number")
		}
		a.exponent += int(shift.Int64()) // at most 400
	}
	return a, nil
}

// Plus returns a + b.
func (a Amount) Plus(b Amount) Amount {
	x, y, exponent := a.level(b)
	return Amount{digits: new(big.Int).Add(x, y), exponent: exponent}
}

// Minus returns a - b.
func (a Amount) Minus(b Amount) Amount {
	x, y, exponent := a.level(b)
	return Amount{digits: new(big.Int).Sub(x, y), exponent: exponent}
}

// Cmp returns -1, 0 or 1 if a is less than, equal to or more than b.
func (a Amount) Cmp(b Amount) int {
	x, y, _ := a.level(b)
	return x.Cmp(y)
}

// Sign returns -1, 0 or 1 if a is below, at or above 0.
func (a Amount) Sign() int {
	if a.digits == nil {
		return 0
	}
	return a.digits.Sign()
}

// String returns a as canonical JSON does. A sum may have more digits than a
// document may contain; none is left out.
func (a Amount) String() string {
	if a.Sign() == 0 {
		return "0"
	}
	digits := []byte(new(big.Int).Abs(a.digits).String())
	first := len(digits) - 1 + a.exponent
	for digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	return string(appendDecimal(nil, a.Sign() < 0, slices.Clip(digits), first))
}

// level returns both as multiples of one power of ten.
func (a Amount) level(b Amount) (x, y *big.Int, exponent int) {
	exponent = min(a.exponent, b.exponent)
	return a.scaled(exponent), b.scaled(exponent), exponent
}

func (a Amount) scaled(exponent int) *big.Int {
	if a.digits == nil {
		return new(big.Int)
	}
	if a.exponent == exponent {
		return a.digits
	}
	ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(a.exponent-exponent)), nil)
	return ten.Mul(ten, a.digits)
}
