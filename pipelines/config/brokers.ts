/** Addresses of Kafka brokers: HOST:PORT, an IPv6 address in brackets. */

/** A list as it is, or one text with commas. */
export function brokerList(given: string | readonly string[]): readonly string[] {
  const list = typeof given === 'string' ? given.split(',') : given
  return list.map(broker => broker.trim())
}

/** What is wrong with an address, in words that follow `log.brokers`; undefined where nothing is. */
export function brokerFault(broker: string): string | undefined {
  // A password may have been written there, so the address is not shown.
  if (broker.includes('@')) return 'holds a user or password; those belong into log.sasl'
  const match = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})$/.exec(broker)
  const port = Number(match?.[2])
  if (match && port >= 1 && port <= 65_535) return undefined
  return `has ${broker === '' ? 'an empty address' : `'${broker}'`}, which is not HOST:PORT`
}

/** Whether a host is this machine: what is sent there crosses no network. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}
