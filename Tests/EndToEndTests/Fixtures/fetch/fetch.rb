# GETs a URL and prints the answer.
require 'net/http'
puts Net::HTTP.get(URI(ARGV[0]))
