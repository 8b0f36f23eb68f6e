/** What people ask about: six topics in each of LaMP-QA's three categories. */
export interface Topic {
  readonly id: string
  readonly category: string
  /** Completes "some ideas for …". */
  readonly about: string
  readonly questions: readonly string[]
  /** How a post about the topic begins. */
  readonly openers: readonly string[]
}

const ART = 'Art_and_Entertainment'
const LIFE = 'Lifestyle_and_Personal_Development'
const SOCIETY = 'Society_and_Culture'

export const CATEGORIES: readonly string[] = [ART, LIFE, SOCIETY]

export const TOPICS: readonly Topic[] = [
  {
    id: 'reading',
    category: ART,
    about: 'my reading',
    questions: ['What should I read next?', 'What would be good reading for me this month?'],
    openers: ['I should read more.', 'What to read next?'],
  },
  {
    id: 'film',
    category: ART,
    about: 'a film evening',
    questions: ['What should I plan for a film evening?', 'How do I make the next film evening good?'],
    openers: ['Planning a film evening.', 'Time for a film.'],
  },
  {
    id: 'music',
    category: ART,
    about: 'my music',
    questions: ['How can I get more music into my life?', 'What music would suit me now?'],
    openers: ['I want more music.', 'Music would be nice.'],
  },
  {
    id: 'drawing',
    category: ART,
    about: 'my drawing',
    questions: ['How should I take up drawing?', 'What would help me to keep drawing?'],
    openers: ['Taking up drawing.', 'I bought drawing paper.'],
  },
  {
    id: 'museum',
    category: ART,
    about: 'a museum visit',
    questions: ['Which museum visit should I plan?', 'How do I get the most from a museum visit?'],
    openers: ['A museum visit, maybe.', 'The museum is open.'],
  },
  {
    id: 'games',
    category: ART,
    about: 'a games afternoon',
    questions: ['What should I play at a games afternoon?', 'Which games would be good for me?'],
    openers: ['I play games again.', 'A games afternoon soon.'],
  },
  {
    id: 'fitness',
    category: LIFE,
    about: 'getting fit',
    questions: ['How can I get fit this year?', 'What is a good way to get fit?'],
    openers: ['I should get fit.', 'Trying to get fit.'],
  },
  {
    id: 'sleep',
    category: LIFE,
    about: 'better sleep',
    questions: ['What would help me sleep better?', 'How do I get a good sleep?'],
    openers: ['I sleep badly.', 'I want better sleep.'],
  },
  {
    id: 'dinner',
    category: LIFE,
    about: 'weekday dinners',
    questions: ['What should I cook for dinner on weekdays?', 'How can I make better weekday dinners?'],
    openers: ['I need dinner ideas.', 'Weekday dinners again.'],
  },
  {
    id: 'trip',
    category: LIFE,
    about: 'a weekend trip',
    questions: ['Where should I go for a weekend trip?', 'What weekend trip would suit me?'],
    openers: ['Planning a weekend trip.', 'A weekend trip soon.'],
  },
  {
    id: 'language',
    category: LIFE,
    about: 'learning a language',
    questions: ['How should I learn a new language?', 'What is a good way to learn a language?'],
    openers: ['Learning a language now.', 'A new language, maybe.'],
  },
  {
    id: 'tidying',
    category: LIFE,
    about: 'tidying my home',
    questions: ['How can I get my home tidy?', 'What would help me to keep my home tidy?'],
    openers: ['I want a tidy home.', 'My home is untidy.'],
  },
  {
    id: 'volunteering',
    category: SOCIETY,
    about: 'helping in town',
    questions: ['How could I help in our town?', 'What help could I give in our town?'],
    openers: ['I could help in town.', 'Our town needs help.'],
  },
  {
    id: 'news',
    category: SOCIETY,
    about: 'following the news',
    questions: ['How should I follow the news?', 'What is a good way to follow the news?'],
    openers: ['I follow the news.', 'What is the news?'],
  },
  {
    id: 'history',
    category: SOCIETY,
    about: 'the history of our area',
    questions: [
      'How can I explore the history of our area?',
      'What should I do to know the history of our area?',
    ],
    openers: ['The history of our area.', 'Reading our area history.'],
  },
  {
    id: 'neighbours',
    category: SOCIETY,
    about: 'meeting my neighbours',
    questions: ['How can I meet my neighbours?', 'What would help me to know my neighbours?'],
    openers: ['Who are my neighbours?', 'I met my neighbours.'],
  },
  {
    id: 'winter',
    category: SOCIETY,
    about: 'the winter holidays',
    questions: ['How should I mark the winter holidays?', 'What would make the winter holidays good?'],
    openers: ['Winter holidays soon.', 'The winter holidays, again.'],
  },
  {
    id: 'green',
    category: SOCIETY,
    about: 'living greener',
    questions: ['How can I live greener?', 'What should I change to live greener?'],
    openers: ['I want to live greener.', 'Trying to live greener.'],
  },
]

export const TOPIC = new Map(TOPICS.map(topic => [topic.id, topic]))
