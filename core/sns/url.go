package sns

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/endpoint"
)

// domains are where the hosts of Amazon's partitions are. Those of the secret
// regions are reachable from within only.
var domains = map[string]string{
	"aws":        "amazonaws.com",
	"aws-us-gov": "amazonaws.com",
	"aws-cn":     "amazonaws.com.cn",
	"aws-eusc":   "amazonaws.eu",
}

// topicARN captures the partition and the region. No region has a digit before
// its number: with [a-z0-9-] for all of it, s3-us-west-2 would be one, and the
// host a bucket that anybody could have had.
var topicARN = regexp.MustCompile(`^arn:(aws[a-z-]*):sns:([a-z]{2,4}(?:-[a-z]{1,16}){1,3}-[0-9]{1,2}):[0-9]{12}:[A-Za-z0-9_-]{1,256}(?:\.fifo)?$`)

// IsTopic reports whether a text has the form of a topic's ARN: that of a region in
// a partition with public addresses, such as
// arn:aws:sns:eu-west-1:123456789012:orders. Messages of other topics never verify.
func IsTopic(arn string) bool {
	_, ok := host(arn)
	return ok
}

// hostOf is the one host that speaks for a topic.
func hostOf(topic string) (string, error) {
	host, ok := host(topic)
	if !ok {
		return "", forged("TopicArn %.300q is not that of a topic", topic)
	}
	return host, nil
}

func host(topic string) (string, bool) {
	m := topicARN.FindStringSubmatch(topic)
	if m == nil || domains[m[1]] == "" {
		return "", false
	}
	return "sns." + m[2] + "." + domains[m[1]], true
}

// isCertificate reports whether the address is one that a host keeps signing
// certificates at. It compares texts: what no parser has read, no two parsers can
// read in different ways.
func isCertificate(address, host string) bool {
	name, ok := strings.CutPrefix(address, "https://"+host+"/SimpleNotificationService-")
	name, pem := strings.CutSuffix(name, ".pem")
	return ok && pem && len(name) == 32 && strings.Trim(name, "0123456789abcdef") == ""
}

// ownConfirmation is the address that confirms the subscription of a verified
// envelope, at the topic's own host. The envelope's is only compared with it: an
// address that says something else is a sign of something we do not understand.
func ownConfirmation(e envelope) (string, error) {
	host, err := hostOf(e["TopicArn"])
	if err != nil {
		return "", err
	}
	query, ok := strings.CutPrefix(e["SubscribeURL"], "https://"+host+"/?")
	given, err := url.ParseQuery(query)
	want := url.Values{"Action": {"ConfirmSubscription"}, "TopicArn": {e["TopicArn"]}, "Token": {e["Token"]}}
	if !ok || err != nil || given.Encode() != want.Encode() {
		return "", refuse(core.Invalid, "Invalid SubscribeURL", "it does not confirm this subscription at %s", host)
	}
	return "https://" + host + "/?" + want.Encode(), nil
}

// givenConfirmation is the envelope's own address, if it may be called at all.
func givenConfirmation(address string, allowHTTP bool) (string, error) {
	u, err := endpoint.ParseURL(address)
	if err != nil {
		return "", refuse(core.Invalid, "Invalid SubscribeURL", "it %w", err)
	}
	if u.Scheme != "https" && !allowHTTP {
		return "", refuse(core.Invalid, "Invalid SubscribeURL", "it is not https (server.allow_private_urls is false)")
	}
	return address, nil
}
