/** What has nothing to do with anybody's preferences. */

/** Posts off every topic. */
export const SMALLTALK: readonly string[] = [
  'The lift broke down again on Tuesday.',
  'Somebody parked across the gate all night.',
  'The roof tiles rattled in the storm.',
  'The kettle blew a fuse this morning.',
  'A parcel arrived with the wrong stamp.',
  'The washing machine leaks under the sink.',
  'Snow fell on the bins before noon.',
  'The dentist moved the appointment twice.',
  'Nobody answered when the bell rang.',
  'The printer jammed on page two.',
]

export const OTHERS: readonly string[] = ['sister', 'brother', 'neighbour', 'cousin', 'friend', 'uncle']

/** What people had in mind when they asked; `{about}` is the topic. */
export const NARRATIVES: readonly string[] = [
  'I have put off {about} for weeks and would like a few clear ideas that I can act on.',
  'I keep coming back to {about}, but most advice seems to be written for somebody else.',
  'A friend and I talked about {about} yesterday, and I noticed that I have no plan at all.',
  'I would like to spend some thought on {about} and want suggestions that really suit me.',
  'There is so much advice on {about} that I no longer know where to begin.',
]
