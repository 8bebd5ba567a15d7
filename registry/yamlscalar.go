package registry

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// The patterns of the YAML 1.2 core schema (section 10.3.2).
var (
	coreInteger = regexp.MustCompile(`^[-+]?[0-9]+$`)
	coreOctal   = regexp.MustCompile(`^0o[0-7]+$`)
	coreHex     = regexp.MustCompile(`^0x[0-9a-fA-F]+$`)
	coreFloat   = regexp.MustCompile(`^([-+]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([-+]?[0-9]+))?$`)
)

// maxNumberLength bounds the digits of a number; longer ones stay text.
const maxNumberLength = 400

// resolvePlain gives a plain scalar its type by the core schema. Numbers keep every digit and take the shortest plain JSON
// form. What JSON cannot say (.inf, .nan, numbers beyond a double) stays text.
func resolvePlain(source string) (yamlKind, string) {
	switch source {
	case "", "~", "null", "Null", "NULL":
		return yamlNull, ""
	case "true", "True", "TRUE":
		return yamlBool, "true"
	case "false", "False", "FALSE":
		return yamlBool, "false"
	}
	if len(source) > maxNumberLength {
		return yamlText, source
	}
	var number string
	switch {
	case coreInteger.MatchString(source):
		number = integerForm(strings.TrimPrefix(source, "+"), 10)
	case coreOctal.MatchString(source):
		number = integerForm(source[2:], 8)
	case coreHex.MatchString(source):
		number = integerForm(source[2:], 16)
	default:
		number = floatForm(source)
	}
	if number == "" {
		return yamlText, source
	}
	if _, err := strconv.ParseFloat(number, 64); err != nil {
		return yamlText, source
	}
	return yamlNumber, number
}

func integerForm(digits string, base int) string {
	n, ok := new(big.Int).SetString(digits, base)
	if !ok {
		return ""
	}
	return n.String()
}

func floatForm(source string) string {
	parts := coreFloat.FindStringSubmatch(source)
	if parts == nil {
		return ""
	}
	sign, whole, fraction, exponent := parts[1], parts[2], parts[3]+parts[4], parts[5]
	whole = strings.TrimLeft(whole, "0")
	fraction = strings.TrimRight(fraction, "0")
	if whole == "" && fraction == "" {
		return "0"
	}
	number := whole
	if whole == "" {
		number = "0"
	}
	if sign == "-" {
		number = "-" + number
	}
	if fraction != "" {
		number += "." + fraction
	}
	if exponent != "" {
		e, err := strconv.Atoi(exponent)
		if err != nil {
			return ""
		}
		if e != 0 {
			number += "e" + strconv.Itoa(e)
		}
	}
	return number
}
